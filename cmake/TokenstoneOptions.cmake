# Compile options shared by every module. Release is -O2 -g (GCC 12's -O3 trips over a false -Wrestrict in std::string);
# checks on kept state never depend on NDEBUG.
set(TOKENSTONE_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, address or thread")

add_library(ts_options INTERFACE)
target_compile_options(ts_options INTERFACE
  -Wall -Wextra -Werror -Wno-restrict -Wno-missing-field-initializers -Wshadow=local -fno-math-errno)
target_include_directories(ts_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

if(TOKENSTONE_SANITIZE STREQUAL "address")
  target_compile_options(ts_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ts_options INTERFACE -fsanitize=address,undefined)
elseif(TOKENSTONE_SANITIZE STREQUAL "thread")
  target_compile_options(ts_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  target_link_options(ts_options INTERFACE -fsanitize=thread)
elseif(NOT TOKENSTONE_SANITIZE STREQUAL "")
  message(FATAL_ERROR "TOKENSTONE_SANITIZE must be empty, address or thread; it is '${TOKENSTONE_SANITIZE}'")
endif()
