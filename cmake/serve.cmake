# ebb::serve: the page of a running program, over HTTP. Apart from libebb, so that who does not serve links no server.
add_library(ebb_serve STATIC core/memory/serve.cpp)
add_library(ebb::serve ALIAS ebb_serve)
set_target_properties(ebb_serve PROPERTIES EXPORT_NAME serve POSITION_INDEPENDENT_CODE ON)
target_include_directories(ebb_serve SYSTEM PRIVATE third_party/httplib)
target_link_libraries(ebb_serve PUBLIC ebb)
target_compile_options(ebb_serve PRIVATE -O1)
ebb_warnings(ebb_serve)
